import Discovery
import Glibc
import Logging
import Model
import ServiceLifecycle

/// Advertises the state debugger as `_debug._tcp`, so that apps connect to it.
struct DebugLinkAdvertiser: Service {
    /// Nil if Bonjour is disabled in the configuration.
    let bonjour: BonjourSource?
    let name: String
    let port: UInt16
    let logger: Logger

    func run() async throws {
        do {
            guard let bonjour else {
                logger.warning("apps cannot find the state debugger, because discovery.enabled is false")
                return try await gracefulShutdown()
            }
            var txt = TXTRecord()
            txt.set(DebuggerDialer.originKey, to: Array(DebuggerDialer.origin.utf8))
            _ = try await bonjour.advertise(AdvertisementSpec(name: name, type: .debug, port: port, txt: txt))
        } catch let error as DiscoveryError {
            logger.error("the state debugger is not advertised", metadata: ["reason": "\(error)"])
        }
        try await gracefulShutdown()
    }

    /// The instance name by default: `patchbay-` with the name of this machine.
    static var standardName: String {
        var text = [CChar](repeating: 0, count: 256)
        gethostname(&text, text.count - 1)
        let host = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return SanitizedText("patchbay-\(host.prefix { $0 != "." })").text
    }
}
