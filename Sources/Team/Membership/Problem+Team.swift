import Model
import SystemIO
import Transport

extension Problem {
    /// Converts the errors of the team's parts to problems.
    nonisolated(nonsending) static func ofTeam<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch {
            if let problem = Problem(ofTeam: error) { throw problem }
            throw error
        }
    }

    /// Returns the problem that a check finds, or because of which it fails.
    nonisolated(nonsending) static func found(by check: () async throws -> Problem?) async -> Problem? {
        do { return try await check() } catch { return Problem(ofTeam: error) ?? Problem(.unavailable, "\(error)") }
    }

    /// Returns the next step after an error of the team registry.
    static func hint(after error: TeamError) -> String {
        guard case .store(.unreachable) = error else { return "patchbay team" }
        return "check that etcd runs on its servers, which `patchbay team` lists"
    }

    /// The problem of an error of the team's parts; nil for another error.
    init?(ofTeam error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let error as TLSError:
            switch error {
            case .notIssued, .notAccepted: self.init(.badRequest, "\(error)")
            default: self.init(.unavailable, "\(error)")
            }
        case TeamError.nameTaken(let host):
            self.init(
                .conflict,
                "the team has another host with the name \(host)",
                hint: "choose another name with --host, or remove that host first: patchbay team remove \(host)"
            )
        case TeamStoreError.userExists(let name):
            self.init(
                .conflict,
                "etcd has another user with the name \(name)",
                hint: "choose another name with --host"
            )
        case let error as TeamError:
            let code: Code =
                switch error {
                case .wrongTeam, .newerSchema: .conflict
                default: .unavailable
                }
            self.init(code, "\(error)", hint: Self.hint(after: error))
        case let error as TeamStoreError:
            self.init(.unavailable, "\(error)", hint: Self.hint(after: .store(error)))
        case let error as StateError: self.init(.unavailable, "\(error)", hint: "patchbay doctor")
        default: return nil
        }
    }
}
