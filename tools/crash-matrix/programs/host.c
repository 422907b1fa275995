/* A program in C, or in C++: KIND [DIRECTORY]. Without a directory no handler is installed. */
#include "kinds.h"

int main(int count, char **arguments)
{
    return count < 2 ? 2 : host_run(arguments[1], count < 3 ? "" : arguments[2]);
}
