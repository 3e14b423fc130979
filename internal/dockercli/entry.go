package dockercli

import "encoding/json"

// entry is what of a record it takes to run a command in a container that runs.
// Package json looks at everything that a type can hold before it reads the
// first value: for a whole Container that takes longer than to run a short
// command.
type entry struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Hostname string   `json:"hostname"`
	Env      []string `json:"env"`
	Workdir  string   `json:"workdir"`
	User     string   `json:"user"`
	Home     string   `json:"home"`
	Main     struct {
		Process  string `json:"process"`
		Attached bool   `json:"attached"`
	} `json:"main"`
	Guest *Guest `json:"guest"`
}

func readToEnter(record []byte) (*Container, error) {
	var e entry
	err := json.Unmarshal(record, &e)
	return &Container{
		ID: e.ID, Name: e.Name, Hostname: e.Hostname, Env: e.Env, Workdir: e.Workdir, User: e.User, Home: e.Home,
		Main: Life{Process: e.Main.Process, Attached: e.Main.Attached}, Guest: e.Guest,
	}, err
}
