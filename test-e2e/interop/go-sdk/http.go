package main

import (
	"net/http"
	"reflect"

	"github.com/openziti/sdk-golang/ziti"
)

// transportOf returns what sends the requests of a client. Since 1.3 the SDK wraps it.
func transportOf(client *ziti.CtrlClient) *http.Transport {
	if plain, ok := client.HttpClient.Transport.(*http.Transport); ok {
		return plain
	}
	wrapper := reflect.ValueOf(client.HttpClient.Transport).Elem()
	return wrapper.FieldByName("Transport").Interface().(*http.Transport)
}
