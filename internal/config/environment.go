package config

import "github.com/atoll-run/atoll/internal/config/environment"

// Environment is what configuration needs to know of the process around it.
type Environment = environment.Environment

// Paths are the directories that settings refer to.
type Paths = environment.Paths

// Location says which file was found, and why that one.
type Location = environment.Location

// Find returns the first of a person's own files that exists.
func Find(env Environment) (Location, error) { return environment.Find(env) }

// Open loads the file that Find returned; without one it returns Default.
func Open(env Environment, at Location) (*Config, error) {
	if at.Path == "" {
		return Default(env), nil
	}
	return Load(at.Path, env)
}
