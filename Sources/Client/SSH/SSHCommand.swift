import FoundationEssentials
import Glibc
import SystemIO

/// The command lines of ssh(1) for one destination.
///
/// The user's configuration, agent, known hosts and prompts apply. ssh opens the terminal itself for a prompt.
struct SSHCommand {
    let destination: SSHDestination

    /// The beginning of the line by which a remote command reports; the output of a login script precedes it.
    static let mark = "patchbay-ssh: "

    /// Options that the user's configuration must not change. The first value of an option applies (ssh_config(5)).
    private static let options = [
        // Forwardings and commands of the configuration are for interactive sessions.
        "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no", "RemoteCommand=none",
        "RequestTTY=no", "ConnectTimeout=30",
        // A peer that disappeared is noticed after 45 s, like a silent event stream.
        "ServerAliveInterval=15", "ServerAliveCountMax=3",
    ]

    /// The path of the program `ssh`.
    ///
    /// - Throws: `ClientError.sshFailed` if it is not installed.
    static func program(path: String? = ProcessInfo.processInfo.environment["PATH"]) throws(ClientError) -> String {
        for folder in (path ?? "/usr/bin:/bin").split(separator: ":") where folder.hasPrefix("/") {
            if access("\(folder)/ssh", X_OK) == 0 { return "\(folder)/ssh" }
        }
        throw .sshMissing
    }

    /// Prints the user's configuration for the destination. A line that begins with `controlPathKey` has the path of the
    /// user's control socket.
    var configuration: [String] { ["-G"] + target }

    static let controlPathKey = "controlpath "

    /// Exits with 0 if an ssh of the user shares its connection on this control socket (ControlMaster).
    func check(control: String) -> [String] { Self.words(["ControlPath=\(control)"]) + ["-O", "check"] + target }

    /// Logs in, finds the broker's socket, and stays until the input ends.
    ///
    /// With `isShared` it uses the connection of that control socket. Otherwise it opens a connection and shares it there.
    func login(control: String, isShared: Bool) -> [String] {
        let sharing = isShared ? ["ControlMaster=no"] : ["ControlMaster=yes", "ControlPersist=no"]
        return Self.words(["ControlPath=\(control)"] + sharing + Self.options) + target + [Self.remote(finder)]
    }

    /// Arguments of `/bin/sh`: forwards a local socket over the connection of a control socket, until the input ends.
    ///
    /// The user's own ssh may have the listener. So the script also removes the forwarding after this process was killed. The
    /// user's configuration has forwardings of its own, so it is not read. (`-O proxy` has the listener in its own process.
    /// But its end closes the shared connection, with OpenSSH 9.2: "oclose packet referred to nonexistent channel".)
    func forward(program: String, from local: String, to remote: String, control: String) -> [String] {
        let script = """
            trap '' TERM HUP; ssh=$1; shift; "$ssh" -O forward "$@" || exit; echo "\(Self.mark)"; cat; \
            exec "$ssh" -O cancel "$@" 2>/dev/null
            """
        let options = Self.words(["ControlPath=\(control)", "StreamLocalBindMask=0177"])
        return ["-c", script, "sh", program, "-F", "none"] + options + ["-L", "\(local):\(remote)"] + target
    }

    /// Prints the state and the path of the socket that a local `patchbay` would use (`BrokerSocketPath.find`).
    private var finder: String {
        let paths =
            destination.socket
            ?? "$PATCHBAY_SOCKET /run/patchbay/patchbay.sock ${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/patchbay/patchbay.sock"
        return """
            for s in \(paths); do if test -S "$s"; then \
            if test -w "$s"; then echo "\(Self.mark)found $s"; else echo "\(Self.mark)denied $s"; fi; exec cat; \
            fi; done; echo "\(Self.mark)none"; exec cat
            """
    }

    /// The login shell of the user may be any shell. Single quotes and `exec` mean the same in all of them.
    private static func remote(_ script: String) -> String { "exec sh -c '\(script)'" }

    private static func words(_ options: [String]) -> [String] { ["-T"] + options.flatMap { ["-o", $0] } }

    /// `--` ends the options, although no part of a destination begins with a hyphen.
    private var target: [String] {
        (destination.user.map { ["-l", $0] } ?? []) + (destination.port.map { ["-p", "\($0)"] } ?? [])
            + ["--", destination.host]
    }
}
