import Model
import SystemIO
import TLS
import Team

extension Problem {
    /// Converts the errors of the team's parts to problems.
    nonisolated(nonsending) static func ofTeam<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch let error as TLSError {
            throw switch error {
            case .notIssued, .notOfTeam: Problem(.badRequest, "\(error)")
            default: Problem(.unavailable, "\(error)")
            }
        } catch TeamError.nameTaken(let host) {
            throw Problem(
                .conflict,
                "the team has another host with the name \(host)",
                hint: "choose another name with --host, or remove that host first: patchbay team remove \(host)"
            )
        } catch TeamStoreError.userExists(let name) {
            throw Problem(
                .conflict,
                "etcd has another user with the name \(name)",
                hint: "choose another name with --host"
            )
        } catch let error as TeamError {
            let code: Problem.Code =
                switch error {
                case .wrongTeam, .newerSchema: .conflict
                default: .unavailable
                }
            throw Problem(code, "\(error)", hint: "patchbay team")
        } catch let error as TeamStoreError {
            throw Problem(.unavailable, "\(error)", hint: "patchbay team")
        } catch let error as StateError {
            throw Problem(.unavailable, "\(error)", hint: "patchbay doctor")
        }
    }
}
