// Answers each request with net/http's understanding of it: method, target, authority and the length of the body, a
// line each. Prints its port; ends when its standard input ends.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	answer := func(to http.ResponseWriter, asked *http.Request) {
		body, err := io.ReadAll(asked.Body)
		if err != nil {
			to.Header().Set("Connection", "close")
			to.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(to, "%s\n%s\n%s\n%d\n", asked.Method, asked.RequestURI, asked.Host, len(body))
	}
	server := http.Server{Handler: http.HandlerFunc(answer), DisableGeneralOptionsHandler: true}
	go server.Serve(listener)
	io.Copy(io.Discard, os.Stdin)
}
