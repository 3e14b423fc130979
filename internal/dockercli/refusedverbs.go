package dockercli

import (
	"fmt"
	"strings"
)

// refusedVerb is something that docker does and Atoll does not: why, and what to
// do instead.
type refusedVerb struct {
	names        string // separated by spaces; those of groups written group/verb
	reason, hint string
}

// refusedVerbs are all that docker has and verbTable has not. No verb is a
// surprise: TestEveryVerbOfDockerIsKnown reads docker's own help.
func refusedVerbs() []refusedVerb {
	return []refusedVerb{
		{"rename container/rename", "a container's name is that of its sandbox, and stays", "docker rm it, and create it under the other name"},
		{"stats container/stats", "nothing runs beside a sandbox that could measure it all the time",
			"bound it with --memory, --cpus and --pids-limit; `docker exec CONTAINER ps` shows what runs"},
		{"top container/top", "it would show processes as the host sees them", "docker exec CONTAINER ps"},
		{"volume", "volumes of an engine are not kept here", "mount a host directory: -v /source:/target"},
		{"update container/update", "the limits of a sandbox are part of what it was made from", "docker rm it, and create it with others"},
		{"diff container/diff", "the changes of a container's files are not listed", "docker cp the files that matter, or mount a directory"},
		{"commit container/commit export container/export", "images are not made from sandboxes", "docker cp the files, and build an image from them"},
		{"build builder image/build", "images are built by an engine or by a recipe", "atoll images build RECIPE, or build it elsewhere and `atoll images import` it"},
		{"load import image/load image/import", "images are taken in by atoll itself", "atoll images import FILE"},
		{"rmi image/rm", "images are removed by atoll itself, which knows what stands on them", "atoll images rm IMAGE"},
		{"push save history manifest trust image/push image/save image/history", "images go in here, never out", "use the tool that built the image"},
		{"login logout", "credentials of registries have no use here", "atoll images pull reads those of docker's own configuration"},
		{"search", "registries are not searched", "name the image: docker pull IMAGE"},
		{"events checkpoint system/events", whyNoWatch, "docker wait, docker logs -f"},
		{"network/connect network/disconnect network/rm network/prune", "a sandbox has no network but its wire to the host", "leave --network out"},
		{"container/prune image/prune system/prune system/df", "whoever made a container removes it", "docker rm CONTAINER; atoll sandbox prune removes what sessions no longer use"},
		{"plugin context config node secret service stack swarm", "there is no daemon and no cluster", "one machine's sandboxes are all there is"},
	}
}

// refuseVerb returns the refusal of one of docker's verbs; nil if docker has none of
// that name.
func refuseVerb(path string) error {
	for _, r := range refusedVerbs() {
		for name := range strings.FieldsSeq(r.names) {
			if asked := strings.ReplaceAll(path, " ", "/"); asked == name || strings.HasPrefix(asked, name+"/") {
				return &exitError{code: exitUsage, raw: true, err: fmt.Errorf("docker: 'docker %s' is refused: %s\nhint: %s", path, r.reason, r.hint)}
			}
		}
	}
	return nil
}
