cd /workspace/repo
git config user.name Example
git config user.email example@example.org
echo 'Thank you for reading.' >>README.md
git commit -qam 'Thank the reader'
echo 'one commit'
