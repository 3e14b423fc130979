//go:build linux

package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

// call sends a request to a gateway with net/http alone and decodes the answer.
func call(g *gatewaytest.Gateway, method, path string, body, answer any) (status int) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequestWithContext(context.Background(), method, g.URL+path, bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	response, err := (&http.Client{}).Do(r)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		panic(err)
	}
	return response.StatusCode
}

func start() *gatewaytest.Gateway {
	g, err := gatewaytest.Start(context.Background())
	if err != nil {
		panic(err)
	}
	return g
}

// A run is started with one request, and answered with its receipt when it is over.
func ExampleRunRequest() {
	g := start()
	defer g.Close()

	var run api.Run
	status := call(g, http.MethodPost, "/api/v1/ai/runs", api.RunRequest{Message: "echo hello"}, &run)
	fmt.Println(status, run.Step == api.RunOver, run.Text)
	// Output: 200 true hello
}

// Everything that is wrong with a request is in one problem.
func ExampleProblem() {
	g := start()
	defer g.Close()

	var problem api.Problem
	call(g, http.MethodPost, "/api/v1/ai/runs", map[string]any{"message": ""}, &problem)
	fmt.Println(problem.Status, problem.Code)
	for _, e := range problem.Errors {
		fmt.Println(e.Pointer)
	}
	// Output:
	// 422 invalid_request
	// /message
}

// Values turns a query struct into the parameters of an address.
func ExampleValues() {
	g := start()
	defer g.Close()

	path := "/api/v1/ai/runs?" + api.Values(api.RunQuery{Limit: 10, Account: "ann", Open: true}).Encode()
	var runs api.Runs
	fmt.Println(path)
	fmt.Println(call(g, http.MethodGet, path, nil, &runs), len(runs.Runs))
	// Output:
	// /api/v1/ai/runs?account=ann&limit=10&open=true
	// 200 0
}
