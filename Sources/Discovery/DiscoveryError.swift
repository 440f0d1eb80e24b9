/// Why Bonjour did not do what it was asked.
package enum DiscoveryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The advertisement is not one that Bonjour can carry; `reason` says which part of it.
    case notPublishable(name: String, reason: String)
    case noSuchAdvertisement(id: String)
    case tooManyAdvertisements(limit: Int)
    /// `run()` was called a second time; a source runs once.
    case alreadyRun

    package var description: String {
        switch self {
        case .notPublishable(let name, let reason): "\"\(name)\" cannot be advertised: \(reason)"
        case .noSuchAdvertisement(let id): "there is no advertisement \"\(id)\""
        case .tooManyAdvertisements(let limit): "\(limit) services are advertised already, which is the limit"
        case .alreadyRun: "this Bonjour source has run already; make another one"
        }
    }

    /// The next thing to try.
    package var next: String? {
        switch self {
        case .notPublishable: "patchbay advertise --help"
        case .noSuchAdvertisement: "patchbay advertisements"
        case .tooManyAdvertisements: "patchbay advertisements rm ID"
        case .alreadyRun: nil
        }
    }
}
