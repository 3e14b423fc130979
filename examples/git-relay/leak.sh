cd /workspace/repo
git config user.name Example
git config user.email example@example.org
openssl genpkey -algorithm ed25519 >id_ed25519
git add id_ed25519
git commit -qm 'Add the key'
echo 'one commit'
