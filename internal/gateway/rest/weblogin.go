package rest

import (
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// errNoPages is the answer of a gateway without pages.
var errNoPages = &api.Problem{Status: http.StatusNotFound, Code: "no_dashboard", Detail: "this gateway serves no dashboard", Hint: "set gateway.controlUi.enabled to true"}

// createLogInCode makes a code for the owner, whom the kernel has confirmed.
func (s *Server) createLogInCode(c *call, _, _ *none) (*api.LogInCode, error) {
	switch {
	case s.Web == nil:
		return nil, errNoPages
	case c.caller.Token != access.Socket().Token || c.caller.WebLogin != "":
		return nil, &api.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "codes are made on the gateway's own socket", Hint: "call `atoll dashboard` as the user of the gateway, or log in with a token"}
	}
	page := s.PageURL()
	if page == "" {
		return nil, &api.Problem{Status: http.StatusConflict, Code: "no_address", Detail: "this gateway listens on its socket alone, which web browsers cannot reach", Hint: "it ends a minute after its last use: then `atoll dashboard` starts one that they reach"}
	}
	code, expires, err := s.Web.NewWebCode()
	if err != nil {
		return nil, err
	}
	return &api.LogInCode{Code: code, URL: page + "#code=" + code, Expires: expires}, nil
}

// logIn logs a web browser in and sets its cookie.
func (s *Server) logIn(c *call, _ *none, body *api.LogIn) (*api.LoggedIn, error) {
	if s.Web == nil {
		return nil, errNoPages
	}
	if (body.Token == "") == (body.Code == "") {
		return nil, invalid(api.FieldError{Pointer: "/token", Detail: "give a token or a code, one of both"})
	}
	begin, proof := s.Web.LogInWithToken, body.Token
	if body.Code != "" {
		begin, proof = s.Web.LogInWithCode, body.Code
	}
	login, secrets, err := begin(c.ctx(), access.Remote(c.r), proof)
	if err != nil {
		return nil, err
	}
	http.SetCookie(c.w, s.cookie(secrets.Cookie.Reveal(), int(access.WebLoginLife.Seconds())))
	me := api.Me{Name: login.Name, Scope: string(login.Scope), Account: login.Account, Version: s.Version}
	return &api.LoggedIn{Page: secrets.Page.Reveal(), Expires: login.Expires, Me: me}, nil
}

// cookie returns the cookie of web logins; an age below zero removes it.
func (s *Server) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: s.Web.CookieName, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.Web.SecureCookie,
	}
}

// logOut ends the web login of the request.
func (s *Server) logOut(c *call, _, _ *none) (*api.Done, error) {
	if s.Web == nil || c.caller.WebLogin == "" {
		return nil, &api.Problem{Status: http.StatusConflict, Code: "no_web_login", Detail: "this request came with no log-in of a web browser"}
	}
	if err := s.Web.Web.End(c.ctx(), c.caller.WebLogin); err != nil {
		return nil, err
	}
	http.SetCookie(c.w, s.cookie("", -1))
	return &api.Done{OK: true}, nil
}

// me says who the caller is.
func (s *Server) me(c *call, _, _ *none) (*api.Me, error) {
	return &api.Me{Name: c.caller.Name, Scope: string(c.caller.Scope), Account: c.caller.Account, Version: s.Version}, nil
}
