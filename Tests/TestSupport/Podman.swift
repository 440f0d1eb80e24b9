/// Containers with the file system of this machine, and without a network.
package enum Podman {
    /// The arguments of podman in front of those of one container.
    ///
    /// crun, the default runtime, refuses a machine with control groups of both versions. The limits of podman's own
    /// defaults exceed those that a virtual machine may have.
    package static let arguments = [
        "--runtime=runc", "--cgroup-manager=cgroupfs", "run", "--rm", "--network=none", "--ulimit", "nofile=1024:1024",
        "--ulimit", "nproc=1024:1024",
    ]
}
