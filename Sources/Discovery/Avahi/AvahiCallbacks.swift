import CAvahi
import Model

/// What libavahi-client calls back: each copies C memory to values and tells the ticket in its userdata.
///
/// They run on the Avahi thread, inside the poll's turn or inside the very call that makes the object.
enum AvahiCallback {
    static func client(_ client: OpaquePointer?, _ state: AvahiClientState, _ userdata: UnsafeMutableRawPointer?) {
        let server: AvahiEvent.Server
        switch state {
        case AVAHI_CLIENT_CONNECTING: server = .connecting
        case AVAHI_CLIENT_S_REGISTERING, AVAHI_CLIENT_S_COLLISION: server = .registering
        case AVAHI_CLIENT_S_RUNNING: server = .running
        // Only here the error number means anything; in other states it is a leftover.
        case AVAHI_CLIENT_FAILURE: server = .failed(avahi_client_errno(client))
        default: return
        }
        AvahiCallbackContext.report(.client(server), to: userdata)
    }

    static func change(_ event: AvahiBrowserEvent, _ client: @autoclosure () -> OpaquePointer?) -> AvahiEvent.Change? {
        switch event {
        case AVAHI_BROWSER_NEW: .appeared
        case AVAHI_BROWSER_REMOVE: .disappeared
        case AVAHI_BROWSER_ALL_FOR_NOW: .allForNow
        case AVAHI_BROWSER_FAILURE: .failed(avahi_client_errno(client()))
        // CACHE_EXHAUSTED says only that the cache has been read.
        default: nil
        }
    }

    static func key(
        _ interface: AvahiIfIndex,
        _ transport: AvahiProtocol,
        _ name: UnsafePointer<CChar>?,
        _ type: UnsafePointer<CChar>?,
        _ domain: UnsafePointer<CChar>?
    ) -> ServiceKey? {
        guard let name, let type, let domain else { return nil }
        return ServiceKey(
            interface: interface,
            transport: transport,
            name: Array(String(cString: name).utf8),
            type: String(cString: type),
            domain: String(cString: domain)
        )
    }

    static func address(_ address: UnsafePointer<AvahiAddress>?) -> IPAddress? {
        guard let address else { return nil }
        let size = Int(address.pointee.proto) == Int(AVAHI_PROTO_INET) ? 4 : 16
        return withUnsafeBytes(of: address.pointee.data) { IPAddress(bytes: Array($0.prefix(size))) }
    }
}

/// What a C object carries as userdata: who is told, and in whose name.
///
/// Kept alive by the connection for as long as the C object lives.
final class AvahiCallbackContext: Sendable {
    let purpose: AvahiObjectKey
    private unowned let engine: AvahiEngine

    init(purpose: AvahiObjectKey, engine: AvahiEngine) {
        self.purpose = purpose
        self.engine = engine
    }

    /// Tells the engine; only from a callback, which by libavahi's rules runs on the thread that turns its poll.
    func report(_ fact: AvahiEvent) {
        engine.assumeIsolated { $0.receive(fact, from: self) }
    }

    static func report(_ fact: AvahiEvent, to userdata: UnsafeMutableRawPointer?) {
        guard let userdata else { return }
        Unmanaged<AvahiCallbackContext>.fromOpaque(userdata).takeUnretainedValue().report(fact)
    }
}

/// What a callback of libavahi-client told, copied out of C memory.
enum AvahiEvent: Sendable {
    /// How a browser's world changed.
    enum Change: Hashable, Sendable {
        case appeared
        case disappeared
        case allForNow
        case failed(CInt)
    }

    enum Server: Hashable, Sendable {
        case connecting
        case registering
        case running
        case failed(CInt)
    }

    enum Group: Hashable, Sendable {
        case established
        case collided
        case failed(CInt)
    }

    case client(Server)
    /// The key is nil when the change is about the browser itself.
    case service(Change, ServiceKey?, isOurOwn: Bool)
    case record(Change, interface: CInt, transport: CInt, data: [UInt8])
    case resolved(ResolvedService)
    case unresolved(CInt)
    case group(Group)
}
