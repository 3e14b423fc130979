package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// CommandLine is the origin of values that flags set.
const CommandLine = "the command line"

// ProblemJSON is a problem of the configuration with all its fields, so that
// programs need not ask which ones are there.
type ProblemJSON struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Line    int    `json:"line"`   // 0 if it is not in the file
	Column  int    `json:"column"` // 0 if it is not in the file
	Hint    string `json:"hint"`
}

// ProblemsJSON returns the problems of a configuration for JSON output.
func ProblemsJSON(problems []config.Problem) []ProblemJSON {
	list := []ProblemJSON{}
	for _, p := range problems {
		list = append(list, ProblemJSON{p.Path, p.Message, p.Line, p.Column, p.Hint})
	}
	return list
}

// ProblemLine is a problem as one line for a person.
func ProblemLine(p config.Problem) string {
	text := Printable(p.String())
	if p.Hint != "" {
		text += " (hint: " + Printable(p.Hint) + ")"
	}
	return text
}

// ConfigError prints what is wrong with the configuration as JSON where that
// was asked for; all of it is one failure.
func (e *Env) ConfigError(err error, asJSON bool) error {
	if !asJSON || Code(err) != ExitUsage {
		return err
	}
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		problems = config.Problems{{Message: err.Error(), Hint: errhint.Of(err)}}
	}
	if err := e.PrintJSON(map[string]any{"errors": ProblemsJSON(problems)}); err != nil {
		return err
	}
	return WithCode(ExitUsage, nil)
}

// Refusals puts what policy refuses in the form, and at the place, of a mistake
// in the file: to its author it is one.
func Refusals(s *provide.Settings, p *plan.Plan) config.Problems {
	var problems config.Problems
	for _, f := range p.Findings {
		problems = append(problems, refusal(s, p.Agent, f))
	}
	return problems
}

func refusal(s *provide.Settings, agent *config.Agent, f policy.Finding) config.Problem {
	problem := config.Problem{File: s.Location.Path, Path: "agents.defaults." + f.Field, Message: f.Message, Hint: f.Hint}
	origin := OriginOf(agent, cmp.Or(f.Cause, f.Field))
	if f.Cause != "" && origin.Source == "agent" {
		problem.Message = fmt.Sprintf("agent %q: %s", agent.ID, f.Message)
	}
	switch {
	case origin.Path == CommandLine:
		problem.File, problem.Path = "", f.Field+" (from "+CommandLine+")"
	case origin.Line > 0:
		problem.Path = origin.Path
		problem.Line, problem.Column = s.Config.Position(origin.Path)
	}
	return problem
}

// OriginOf finds the origin of a field. The entries of a list that was written
// in one place ("tmpfs[1]") share the list's, and are found below it.
func OriginOf(agent *config.Agent, field string) config.Origin {
	if origin, ok := agent.Origins[field]; ok {
		return origin
	}
	list, index, ok := strings.Cut(field, "[")
	if !ok {
		return config.Origin{}
	}
	origin := agent.Origins[list]
	if origin.Line > 0 {
		origin.Path += "[" + index
	}
	return origin
}

// RefusalsOfAll are what policy refuses for any of the agents.
func RefusalsOfAll(s *provide.Settings) config.Problems {
	var problems config.Problems
	for _, id := range s.Config.Agents() {
		p, err := s.Plan(provide.Subject{AgentID: id})
		if err != nil {
			problems = append(problems, config.Problem{File: s.Location.Path, Message: fmt.Sprintf("agent %s: %v", id, err), Hint: errhint.Of(err)})
			continue
		}
		for _, problem := range Refusals(s, p) {
			// What agents.defaults says is refused for each of them.
			if !slices.Contains(problems, problem) {
				problems = append(problems, problem)
			}
		}
	}
	slices.SortStableFunc(problems, func(a, b config.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}
