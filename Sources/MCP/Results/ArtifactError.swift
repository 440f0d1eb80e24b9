/// Why something heavy could not be kept.
package enum ArtifactError: Error, Hashable, Sendable {
    case tooLarge(Int)
    case notSaved(path: String, reason: String)
}

extension ArtifactError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tooLarge(let count): "\(count) bytes are more than the broker keeps"
        case .notSaved(let path, let reason): "\(path) could not be written: \(reason); make room or correct its owner"
        }
    }
}
