import Client
import FoundationEssentials
import Glibc
import Model

/// The hint for a user who reaches no broker of this machine: a stored grant, or another one for a grant that has ended.
struct AccessHint {
    /// The values of `--broker` for which a grant is stored.
    let stored: [String]
    /// True if the command line or the environment names the socket, and the socket does not exist.
    let isNamedSocketMissing: Bool

    init(stored: [String], isNamedSocketMissing: Bool) {
        (self.stored, self.isNamedSocketMissing) = (stored, isNamedSocketMissing)
    }

    /// - Returns: Nil if the command line selects a broker by `--broker`, or if the broker is no unix socket.
    init?(arguments: [String], address: BrokerAddress?, environment: [String: String]) {
        guard case .unix(let path)? = address, BrokerHint.value(of: "--broker", in: arguments) == nil else {
            return nil
        }
        let isNamed = (BrokerHint.value(of: "--socket", in: arguments) ?? environment[BrokerSocketPath.variable]) != nil
        let joined = (try? JoinedBrokerStore(environment: environment).all.map(\.name)) ?? []
        let local = (try? CredentialStore(environment: environment).brokers()) ?? []
        self.init(
            stored: joined + local.filter { $0 != path },
            isNamedSocketMissing: isNamed && access(path, F_OK) != 0
        )
    }

    /// Completes the hint of an error about a broker that does not answer, or refuses this user.
    func completed(_ error: CLIError) -> CLIError {
        var completed = error
        if let first = stored.first {
            let names = stored.count == 1 ? "" : ", also for \(stored.dropFirst().joined(separator: ", "))"
            completed.hint = "you have a grant: add --broker \(first)\(names)" + (error.hint.map { "; or \($0)" } ?? "")
        }
        if isNamedSocketMissing {
            completed.hint =
                (completed.hint.map { "\($0); " } ?? "")
                + "if `patchbay pair --socket` made the socket, its grant has ended: ask an owner for another"
        }
        return completed
    }
}

extension ClientError {
    /// True if no broker of this machine listens, or if it does not admit this user.
    var isAboutAccess: Bool {
        switch self {
        case .brokerNotRunning, .notPermitted: true
        case .refused(let problem): problem.hint?.hasPrefix(Problem.askHint) == true
        default: false
        }
    }
}
