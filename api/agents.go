package api

// Agents is the list of agents that a run can be given to.
type Agents struct {
	Agents []Agent `json:"agents"`
}

// Agent is one agent of the list.
type Agent struct {
	GraphID     string `json:"graphId" doc:"What a run names."`
	Name        string `json:"name"`
	Description string `json:"description"`
	Unavailable string `json:"unavailable,omitempty" doc:"Why runs of it cannot be carried out now; missing if they can."`
}
