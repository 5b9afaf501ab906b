// A goroutine that sends datagrams back one by one: the standard library has no batches.
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	address, err := net.ResolveUDPAddr("udp4", "127.0.0.1:"+os.Args[1])
	var socket *net.UDPConn
	if err == nil {
		socket, err = net.ListenUDP("udp4", address)
	}
	buffer := make([]byte, 2048)
	for err == nil {
		got, from, failure := socket.ReadFromUDPAddrPort(buffer)
		if err = failure; err == nil {
			socket.WriteToUDPAddrPort(buffer[:got], from)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
