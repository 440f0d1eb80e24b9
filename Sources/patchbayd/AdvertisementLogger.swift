import Discovery
import Logging
import Model
import ServiceLifecycle

/// Tells the operator what this machine advertises: a line for each name that is published, withdrawn or refused.
struct AdvertisementLogger: Service {
    let bonjour: BonjourSource
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var known: [String: Advertisement] = [:]
            for await _ in bonjour.advertisementChanges() {
                let now = Dictionary(await bonjour.advertisements().map { ($0.id, $0) }) { one, _ in one }
                for (id, advertisement) in now.sorted(by: { $0.key < $1.key }) {
                    tell(of: advertisement, before: known[id])
                }
                for id in known.keys.sorted() where now[id] == nil {
                    logger.info("advertisement withdrawn", metadata: ["id": "\(id)"])
                }
                known = now
            }
        }
    }

    private func tell(of advertisement: Advertisement, before: Advertisement?) {
        guard before?.state != advertisement.state || before?.finalName != advertisement.finalName else { return }
        var metadata: Logger.Metadata = [
            "id": "\(advertisement.id)", "name": "\(advertisement.finalName)", "type": "\(advertisement.spec.type)",
            "port": "\(advertisement.spec.port)",
        ]
        if let reason = advertisement.reason { metadata["reason"] = "\(reason)" }
        switch advertisement.state {
        case .published: logger.info("advertisement published", metadata: metadata)
        case .failed: logger.notice("advertisement failed", metadata: metadata)
        default: break
        }
    }
}
