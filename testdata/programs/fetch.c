/* Asks a web server for a page, with the resolver of the C library that it is linked with. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
	struct addrinfo hints, *found;
	char text[4096];
	ssize_t n;
	int fd;
	if (argc != 3)
		return 2;
	memset(&hints, 0, sizeof hints);
	hints.ai_socktype = SOCK_STREAM;
	if (getaddrinfo(argv[1], "80", &hints, &found) != 0)
		return 3;
	fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)
		return 4;
	n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", argv[2], argv[1]);
	if (write(fd, text, n) != n)
		return 5;
	while ((n = read(fd, text, sizeof text)) > 0)
		fwrite(text, 1, n, stdout);
	return 0;
}
