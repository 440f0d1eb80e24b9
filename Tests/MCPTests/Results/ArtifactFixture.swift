import FoundationEssentials
import Logging
import MCP
import Model
import TestSupport

/// Stores of artifacts and their users.
enum ArtifactFixture {
    static let owner = AgentCaller(.process(uid: 0, pid: 1, executable: SanitizedText("test")), permissions: nil)

    static func agent(_ grant: String) -> AgentCaller {
        AgentCaller(.grant(grant), permissions: Permissions([.endpointCall], on: .all))
    }

    static func store(in scratch: ScratchFolder) -> ArtifactStore {
        ArtifactStore(in: "\(scratch.path)/artifacts", logger: Logger(label: "test"))
    }
}
