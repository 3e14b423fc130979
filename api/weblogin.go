package api

import "time"

// LogIn logs a web browser in, with the text of a token or with a code of
// `atoll dashboard`: one of both.
type LogIn struct {
	Token string `json:"token,omitzero"`
	Code  string `json:"code,omitzero"`
}

// LoggedIn is the answer to a log-in. The page sends Page in the header X-Atoll-Page
// with every request, beside the cookie that the answer set.
type LoggedIn struct {
	Page    string    `json:"page"`
	Expires time.Time `json:"expires" doc:"If it is not used again."`
	Me      Me        `json:"me"`
}

// Me is the caller, as the gateway knows it.
type Me struct {
	Name    string `json:"name" doc:"Of the token."`
	Scope   string `json:"scope" enum:"admin|operator|operator.approvals|run|read"`
	Account string `json:"account,omitempty" doc:"That the token is bound to; without one it sees all."`
	Version string `json:"version" doc:"Of the gateway."`
}

// LogInCode logs a web browser in as the gateway's owner, once.
type LogInCode struct {
	Code    string    `json:"code"`
	URL     string    `json:"url" doc:"Of the page, with the code in its fragment, which reaches no log."`
	Expires time.Time `json:"expires"`
}

// Done says that something was done.
type Done struct {
	OK bool `json:"ok"`
}
