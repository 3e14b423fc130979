// Package modelcmd has the verbs about models, money and the services of an
// installation: proxy, gateway, token, models, billing, audit, openclaw and docker.
package modelcmd
