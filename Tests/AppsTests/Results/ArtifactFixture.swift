import AccessControl
import Apps
import FoundationEssentials
import Model
import Samples
import TestSupport

/// Stores of artifacts and their users.
enum ArtifactFixture {
    static let owner = Principal.sampleOwner

    static func agent(_ grant: String) -> Principal { .holder(of: grant, [.endpointCall]) }

    static func store(in scratch: ScratchFolder) -> ArtifactStore {
        ArtifactStore(in: "\(scratch.path)/artifacts", logger: .quiet)
    }
}
