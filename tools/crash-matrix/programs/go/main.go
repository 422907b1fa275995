// A program in Go that crashes in C: KIND [DIRECTORY].
package main

// #cgo LDFLAGS: -lkinds
// #include "kinds.h"
import "C"

import "os"

func main() {
	directory := ""
	if len(os.Args) > 2 {
		directory = os.Args[2]
	}
	os.Exit(int(C.host_run(C.CString(os.Args[1]), C.CString(directory))))
}
