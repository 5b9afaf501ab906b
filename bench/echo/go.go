// A goroutine for each connection, on one thread of the runtime; started with a port or the path of a Unix socket.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
)

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 16384)
	for {
		got, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err = connection.Write(buffer[:got]); err != nil {
			return
		}
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	network, address := "tcp", "127.0.0.1:"+os.Args[1]
	if strings.HasPrefix(os.Args[1], "/") {
		network, address = "unix", os.Args[1]
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go echo(connection)
	}
}
