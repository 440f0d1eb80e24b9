package import Logging
import Model
import ServiceLifecycle

/// Logs a line for each advertisement that is published, withdrawn or rejected.
package struct AdvertisementLogger: Service {
    private let bonjour: BonjourSource
    private let logger: Logger

    package init(of bonjour: BonjourSource, logger: Logger) {
        self.bonjour = bonjour
        self.logger = logger
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var known: [String: Advertisement] = [:]
            for await _ in bonjour.advertisementChanges() {
                let now = Dictionary(await bonjour.advertisements().map { ($0.id, $0) }) { one, _ in one }
                for (id, advertisement) in now.sorted(by: { $0.key < $1.key }) {
                    log(advertisement, before: known[id])
                }
                for id in known.keys.sorted() where now[id] == nil {
                    logger.info("advertisement withdrawn", metadata: ["id": "\(id)"])
                }
                known = now
            }
        }
    }

    private func log(_ advertisement: Advertisement, before: Advertisement?) {
        guard before?.state != advertisement.state || before?.publishedName != advertisement.publishedName
        else { return }
        var metadata: Logger.Metadata = [
            "id": "\(advertisement.id)", "name": "\(advertisement.publishedName)", "type": "\(advertisement.spec.type)",
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
