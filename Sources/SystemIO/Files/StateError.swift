/// Why a state file could not be read or written.
package enum StateError: Error, Hashable, Sendable {
    /// A later version of Patchbay wrote it.
    case laterSchema(Int)
    /// The file is there and as it was; its content may be whole.
    case notRead(path: String, String)
    /// The file is as it was.
    case notSaved(path: String, String)
}

extension StateError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .laterSchema(let schema): "its schema is \(schema), and this version of Patchbay knows 1"
        case .notRead(let path, let reason):
            "\(path) could not be read: \(reason); nothing of it is lost; correct its owner, its mode or the disk, and start "
                + "the broker again"
        case .notSaved(let path, let reason):
            "\(path) could not be written: \(reason); make room or correct the folder's owner"
        }
    }
}
