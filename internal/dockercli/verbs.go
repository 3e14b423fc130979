package dockercli

import (
	"maps"
	"slices"
)

// verbTable are the verbs by their short names.
func verbTable() map[string]func(*cli) *verb {
	return map[string]func(*cli) *verb{
		"attach":          (*cli).attachVerb,
		"cp":              (*cli).cpVerb,
		"create":          (*cli).createVerb,
		"exec":            (*cli).execVerb,
		"images":          (*cli).imagesVerb,
		"image inspect":   (*cli).imageInspectVerb,
		"info":            (*cli).infoVerb,
		"inspect":         (*cli).inspectVerb,
		"kill":            (*cli).killVerb,
		"logs":            (*cli).logsVerb,
		"network create":  (*cli).networkCreateVerb,
		"network inspect": (*cli).networkInspectVerb,
		"network ls":      (*cli).networkListVerb,
		"pause":           (*cli).pauseVerb,
		"port":            (*cli).portVerb,
		"ps":              (*cli).psVerb,
		"pull":            (*cli).pullVerb,
		"restart":         (*cli).restartVerb,
		"rm":              (*cli).rmVerb,
		"run":             (*cli).runVerb,
		"start":           (*cli).startVerb,
		"stop":            (*cli).stopVerb,
		"tag":             (*cli).tagVerb,
		"unpause":         (*cli).unpauseVerb,
		"version":         (*cli).versionVerb,
		"wait":            (*cli).waitVerb,
	}
}

// groupTable are the longer names: "docker container ls" is "docker ps".
func groupTable() map[string]map[string]string {
	return map[string]map[string]string{
		"container": {
			"attach": "attach", "cp": "cp", "create": "create", "exec": "exec", "inspect": "inspect", "kill": "kill", "logs": "logs",
			"ls": "ps", "list": "ps", "ps": "ps", "pause": "pause", "port": "port", "restart": "restart", "rm": "rm", "run": "run",
			"start": "start", "stop": "stop", "unpause": "unpause", "wait": "wait",
		},
		"image":   {"inspect": "image inspect", "ls": "images", "list": "images", "pull": "pull", "tag": "tag"},
		"network": {"create": "network create", "inspect": "network inspect", "ls": "network ls", "list": "network ls"},
		"system":  {"info": "info"},
	}
}

func verbNames() []string {
	return slices.Sorted(maps.Keys(verbTable()))
}
