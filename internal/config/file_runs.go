package config

// runsFile is runs.*: which agents can work in sandboxes of their own.
type runsFile struct {
	Concurrency *int                   `json:"concurrency" min:"1" max:"1000" doc:"Most runs of one process at the same time; others wait, and accounts take turns."`
	OpenClaw    *runsOpenClawFile      `json:"openclaw" doc:"Which OpenClaw the variant sandbox:openclaw runs."`
	Variants    map[string]variantFile `json:"variants" keys:"variantID" doc:"More agents that can be given a task, by the id that requests name."`

	External map[string]externalFile `json:"external" keys:"variantID" doc:"Agents of other services, by the id that requests name: tasks are sent to their address."`
}

type externalFile struct {
	Name        *string     `json:"name" check:"line" doc:"What people call it; default: its id."`
	Description *string     `json:"description" check:"line" doc:"What it is, for people."`
	URL         *string     `json:"url" required:"yes" check:"agentURL" doc:"Where tasks are posted to."`
	Token       *llmKeyFile `json:"token" doc:"Where the bearer token comes from that it wants, if it wants one."`
	Private     *bool       `json:"privateNetwork" doc:"Its name may stand for an address of this machine or of a private network. An address that is written in numbers need not be allowed."`
	Timeout     *int        `json:"timeoutSeconds" min:"1" max:"86400" doc:"Seconds until a task is given up; default 600."`
}

type runsOpenClawFile struct {
	Image   *string `json:"image" check:"image" doc:"Image that has OpenClaw in /app."`
	Install *string `json:"install" check:"hostPath" doc:"Directory of the host with an npm installation of OpenClaw and its Node; it is mounted read-only, and the image need not have them."`
	Version *string `json:"version" check:"word" doc:"Release of OpenClaw in the image; that of an installation is read from it."`
	Memory  *Size   `json:"memory" check:"size" doc:"Most memory; default 1024 MB."`
	Mode    *string `json:"mode" enum:"sandbox|gateway" doc:"Where it works: in a sandbox of its own, or at a gateway that many runs share."`

	Gateway *openclawGatewayFile `json:"gateway" doc:"The gateway of OpenClaw that runs are given to with mode gateway."`
}

type openclawGatewayFile struct {
	URL     *string     `json:"url" required:"yes" check:"gatewayURL" doc:"Where the gateway is: ws://HOST:PORT or wss://HOST:PORT."`
	Token   *llmKeyFile `json:"token" required:"yes" doc:"Where its token comes from."`
	Trusted *bool       `json:"trustedNetwork" doc:"Use ws: with a host that is not this one: only trusted machines can listen in."`
}

type variantFile struct {
	Preset      *string           `json:"preset" enum:"claude-code|codex|gemini|opencode" doc:"Take what is not written here from a known program."`
	Name        *string           `json:"name" check:"line" doc:"Its name, for people (default: the preset's, or its id)."`
	Description *string           `json:"description" check:"line" doc:"What it is, for people."`
	Image       *string           `json:"image" check:"image" doc:"Image that has the program; default: the agent's."`
	Argv        []string          `json:"argv" doc:"The program and its arguments. {task}, {task-file}, {model}, {run}, {workspace}, {home}, {base-url} and {seconds} are replaced."`
	Env         map[string]string `json:"env" keys:"envName" check:"envValue" doc:"Its environment, with the same replacements."`
	Files       map[string]string `json:"files" keys:"line" doc:"Files in its home, by relative path, with the same replacements. The home is the workspace, but for runs on a git checkout."`
	Binds       []string          `json:"binds" check:"bind" doc:"Files and directories of the host that it needs, read-only."`
	Volumes     []string          `json:"volumes" enum:"pnpm_store" doc:"Volumes that it uses, if they were filled (atoll volumes seed): each with a layer of its own to write to."`
	Read        *string           `json:"read" enum:"envelope|text|json" doc:"How its answer is found in what it prints: an envelope as OpenClaw's, the text as it is, or a JSON object."`
	Stream      *string           `json:"stream" enum:"claude|codex|opencode|gemini" doc:"The program prints the events of this one: they are shown, and the answer is found in them."`
	Answer      *string           `json:"answer" check:"line" doc:"With read json: the member that is the answer, names joined by points."`
	Failure     *string           `json:"failure" check:"line" doc:"With read json: the member that is true, or a text, if the program failed."`
	Timeout     *int              `json:"timeoutSeconds" min:"1" max:"86400" doc:"Seconds until it is ended."`
	Memory      *Size             `json:"memory" check:"size" doc:"Most memory."`
	User        *string           `json:"user" check:"user" doc:"uid:gid that it runs as and that the workspace belongs to."`
}
