import Glibc
package import Logging
package import Model
import ServiceLifecycle

/// Advertises one service until graceful shutdown.
package struct ServiceAdvertiser: Service {
    private let spec: AdvertisementSpec
    private let publisher: any AdvertisementPublisher
    private let failure: Logger.Message
    private let logger: Logger

    /// - Parameters:
    ///   - spec: The service.
    ///   - publisher: Publishes it.
    ///   - failure: The message of the log when the service cannot be published.
    ///   - logger: The operator's log.
    package init(
        _ spec: AdvertisementSpec,
        publisher: any AdvertisementPublisher,
        failure: Logger.Message,
        logger: Logger
    ) {
        (self.spec, self.publisher, self.failure, self.logger) = (spec, publisher, failure, logger)
    }

    package func run() async throws {
        do { _ = try await publisher.advertise(spec) } catch let error as DiscoveryError {
            logger.error(failure, metadata: ["reason": "\(error)"])
        }
        try await gracefulShutdown()
    }

    /// The default name of a service: `patchbay-` with the name of this machine.
    package static var standardName: String {
        var text = [CChar](repeating: 0, count: 256)
        gethostname(&text, text.count - 1)
        let host = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return SanitizedText("patchbay-\(host.prefix { $0 != "." })").text
    }
}
