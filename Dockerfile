# The image of agentd: a static program, certificates, and nothing else. `cargo xtask dist --only image` builds and tests
# what is copied here:
#
#     docker build -t agentd -f Dockerfile target/dist/image
#     docker run --rm agentd --version
#
# There is no shell: agents in this image have file tools, and their commands fail. For agents that run commands, copy
# /usr/bin/agentd into an image that has what they need. See docs/install.md.
FROM scratch
COPY root/ /
COPY --chown=1000:1000 owned/ /
ENV AGENTD_HOME=/var/lib/agentd HOME=/ PATH=/usr/bin
USER 1000:1000
WORKDIR /work
VOLUME ["/var/lib/agentd", "/work"]
ENTRYPOINT ["/usr/bin/agentd"]
CMD ["daemon", "run"]
