// Package agent is the loop of an agent: ask a model, carry out the tools that
// it calls, tell it the results, until it has nothing more to call or a limit
// is reached.
//
// Whatever happens is written to a transcript before it has an effect: a tool
// call has a durable id and is begun at most once, also over a crash of this
// process. A call that was begun and has no result is reported to the model as
// interrupted, and never repeated.
//
// Models are package chat's, tools are whatever Tools is; sandboxes, money and
// sessions belong to those who put the parts together.
package agent
