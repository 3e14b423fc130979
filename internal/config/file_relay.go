package config

// relayFile is relay.*: where the commits of agents go, and which may.
type relayFile struct {
	Repository *string                     `json:"repository" check:"repository" doc:"Where the repository is: https://HOST/PATH, or a directory that begins with /, ~/, ./ or ../ (default: the git checkout that atoll runs start is started in)."`
	Base       *string                     `json:"base" check:"branchName" doc:"Branch that agents start from and pull requests are for."`
	History    *int                        `json:"history" min:"0" max:"1000000" doc:"Commits of history that a sandbox gets; 0: all of it."`
	Container  *string                     `json:"container" check:"word" doc:"Running container that branches are put into: by atoll relay prepare if it is not told another, and for runs at a gateway of OpenClaw, whose own it is then."`
	Token      *llmKeyFile                 `json:"token" doc:"Where the token comes from that reads and pushes (default: the variable GITHUB_TOKEN, if the address is https)."`
	App        *relayAppFile               `json:"app" doc:"GitHub App whose tokens are used instead: one for each operation."`
	Accounts   map[string]relayAccountFile `json:"accounts" keys:"word" doc:"Repositories and credentials of single billing accounts, which go before those of agents and the general ones."`
	Agents     map[string]relayAccountFile `json:"agents" keys:"word" doc:"Repositories and credentials of single agents."`
	Pulls      *bool                       `json:"pullRequests" doc:"Open a pull request for each branch (default: if the repository is on github.com, or api is given)."`
	API        *string                     `json:"api" check:"upstreamURL" doc:"Address of the API of GitHub Enterprise, such as https://HOST/api/v3."`
	Draft      *bool                       `json:"draft" doc:"Open pull requests as drafts."`
	Labels     []string                    `json:"labels" check:"line" doc:"Labels that pull requests get."`
	Author     *relayAuthorFile            `json:"author" doc:"Who commits are by; the agent's own word is kept in a trailer."`
	CA         *string                     `json:"caFile" check:"hostPath" doc:"File with the certificates that the server's must come from, instead of the system's."`
	Plain      *bool                       `json:"allowHTTP" doc:"Allow an address without encryption: the token crosses the network in the clear."`
	Limits     *relayLimitsFile            `json:"limits" doc:"How much one run may bring."`
	Protect    map[string]string           `json:"protect" keys:"pathPattern" enum:"blocked|approval|allowed" doc:"What a change to paths means, by pattern (* within a name, ** over directories); beside the built-in list, of which an entry is taken out with allowed."`
}

type relayAppFile struct {
	ID           *string `json:"id" required:"yes" check:"word" doc:"The app's id."`
	Installation *int64  `json:"installation" required:"yes" min:"1" doc:"The installation's id."`
	Key          *string `json:"key" required:"yes" check:"hostPath" doc:"File with the app's private key, that only you can read."`
}

type relayAccountFile struct {
	Repository *string       `json:"repository" check:"repository" doc:"Where the repository is, instead of relay.repository."`
	Base       *string       `json:"base" check:"branchName" doc:"Branch of it that agents start from, instead of relay.base."`
	Token      *llmKeyFile   `json:"token" doc:"Where the token comes from."`
	App        *relayAppFile `json:"app" doc:"Installation of a GitHub App."`
}

type relayAuthorFile struct {
	Name  *string `json:"name" check:"line" doc:"Name."`
	Email *string `json:"email" check:"word" doc:"Address."`
}

type relayLimitsFile struct {
	Commits    *int  `json:"commits" min:"1" max:"10000" doc:"Most commits of one run."`
	Files      *int  `json:"files" min:"1" max:"100000" doc:"Most changed files."`
	FileBytes  *Size `json:"fileBytes" check:"size" doc:"Largest file, unpacked."`
	TotalBytes *Size `json:"totalBytes" check:"size" doc:"All changed files of all commits together, unpacked."`
	PackBytes  *Size `json:"packBytes" check:"size" doc:"All that leaves the sandbox, packed."`
}
