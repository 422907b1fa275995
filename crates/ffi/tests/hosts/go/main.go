// A Go program that links the library by cgo: DIRECTORY KIND.
package main

/*
#cgo LDFLAGS: -lbacktrail
#include "backtrail.h"
#include <stdlib.h>
#include <string.h>

static int install(const char *directory)
{
    backtrail_crash_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.directory = directory;
    return backtrail_crash_install(&options);
}

static int *volatile nowhere = (int *)0x18;

static void fault(void)
{
    *nowhere = 1;
}
*/
import "C"

import (
	"fmt"
	"os"
)

type order struct{ number, count int }

func count(o *order) (answer int) {
	defer func() {
		if recover() != nil {
			answer = -1
		}
	}()
	return o.count
}

func main() {
	if C.install(C.CString(os.Args[1])) != 0 {
		os.Exit(1)
	}
	recovered := 0
	for round := 0; round < 1000; round++ {
		if count(nil) == -1 {
			recovered++
		}
	}
	fmt.Println("recovered", recovered)
	switch os.Args[2] {
	case "fault":
		done := make(chan bool)
		go func() {
			C.fault()
			done <- true
		}()
		<-done
	case "abort":
		C.abort()
	case "panic":
		var nothing *order
		fmt.Println(nothing.count)
	}
}
