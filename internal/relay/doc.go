// Package relay takes the commits of an agent out of its sandbox, judges them,
// pushes one branch and opens one pull request. The credentials for that never
// enter a sandbox, and git never runs on the host where an agent can write.
//
//	sandbox ──bundle──▶ quarantine ──content──▶ rewrite ──▶ push ──▶ pull request
//
// Every step is written down before the next begins; what a crash leaves is
// continued by the next process, and nothing is pushed twice.
package relay
