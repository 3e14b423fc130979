package fakellm

// Demo is a small piece of work that a coding agent might do: it looks around,
// finds a test that fails, mends the program and commits. What it says next
// depends on what its tools really answered.
func Demo() Script {
	const dir = "demo"
	return Script{
		{Text: "I look around first.", Calls: []Call{{Name: "exec", Arguments: `{"command":"id -un; pwd; git --version"}`}}},
		{When: "git version", Text: "There is git. I write a program with a test.", Calls: []Call{
			{Name: "write", Arguments: `{"path":"` + dir + `/add.sh","content":"#!/bin/sh\necho $(($1 - $2))\n"}`},
			{Name: "write", Arguments: `{"path":"` + dir + `/test.sh","content":"#!/bin/sh\ngot=$(sh add.sh 2 3)\nif [ \"$got\" = 5 ]; then echo PASS; else echo \"FAIL: 2 + 3 is $got\"; exit 1; fi\n"}`},
		}, Else: &Turn{Text: "There is no git here, so nothing can be committed."}},
		{Text: "Does it work?", Calls: []Call{{Name: "exec", Arguments: `{"command":"cd ` + dir + ` && sh test.sh"}`}}},
		{When: "FAIL", Text: "It does not: it subtracts. I mend that.", Calls: []Call{
			{Name: "edit", Arguments: `{"path":"` + dir + `/add.sh","oldText":"$1 - $2","newText":"$1 + $2"}`},
		}},
		{Text: "And now?", Calls: []Call{{Name: "exec", Arguments: `{"command":"cd ` + dir + ` && sh test.sh"}`}}},
		{When: "PASS", Text: "It passes. I commit it.", Calls: []Call{{Name: "exec", Arguments: `{"command":"cd ` + dir +
			` && (git rev-parse --git-dir >/dev/null 2>&1 || { git init -q . && git config user.name agent && git config user.email agent@atoll.invalid; }) && git add . && git commit -q --allow-empty -m 'Add two numbers' && git log --oneline"}`}}},
		{When: "Add two numbers", Text: "Done: the program adds, its test passes, and the commit is in " + dir + "/."},
	}
}
