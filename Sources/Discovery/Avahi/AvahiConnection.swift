import CAvahi
import Model

/// One connection to avahi-daemon with everything made on it: the only owner of libavahi-client's pointers.
///
/// Every call is timed. After the first fault no further call is made, because each would block for as long as the first
/// did; `close()` is all that is left to do. Confined to the Avahi thread through the actor that holds it.
final class AvahiConnection {
    private struct Object {
        let pointer: OpaquePointer
        /// The userdata of the object's callbacks, which must live as long as the object does.
        let ticket: AvahiCallbackContext
    }

    /// The wildcards of the lookup calls.
    static let anyInterface = AvahiIfIndex(AVAHI_IF_UNSPEC)
    static let anyProtocol = AvahiProtocol(AVAHI_PROTO_UNSPEC)
    static let domain = "local"

    private(set) var fault: AvahiError?
    private unowned let engine: AvahiEngine
    private let health: BonjourStatus
    private let clientTicket: AvahiCallbackContext
    private var client: OpaquePointer?
    private var objects: [AvahiObjectKey: Object] = [:]

    /// Connects to the bus. The daemon need not be there: the client then reports when it appears.
    ///
    /// - Throws: `AvahiError` when there is no bus to connect to.
    init(on poll: AvahiPollPointer, engine: AvahiEngine, health: BonjourStatus) throws(AvahiError) {
        self.engine = engine
        self.health = health
        clientTicket = AvahiCallbackContext(purpose: .client, engine: engine)
        let userdata = Unmanaged.passUnretained(clientTicket).toOpaque()
        var code: CInt = 0
        health.callBegan()
        client = avahi_client_new(
            poll.api,
            AVAHI_CLIENT_NO_FAIL,
            { AvahiCallback.client($0, $1, $2) },
            userdata,
            &code
        )
        // Not a fault however long it took: a hung daemon shows as CONNECTING now, and that has its own limit.
        _ = health.callEnded()
        if client == nil { throw .unreachable(reason: AvahiString.error(code)) }
    }

    deinit { close() }

    /// Frees everything; the only place where the client and what is still open on it are freed.
    ///
    /// avahi_client_free closes the bus before it frees the objects, so that this never blocks; the daemon withdraws the
    /// adverts of a client that left and sends their goodbyes.
    func close() {
        guard let client else { return }
        self.client = nil
        avahi_client_free(client)
        objects = [:]
    }

    /// False for what an object said before it was freed.
    func holds(_ ticket: AvahiCallbackContext) -> Bool {
        ticket === clientTicket || objects[ticket.purpose]?.ticket === ticket
    }

    func has(_ purpose: AvahiObjectKey) -> Bool { objects[purpose] != nil }

    func pointer(of purpose: AvahiObjectKey) -> OpaquePointer? { objects[purpose]?.pointer }

    /// Makes an object by one of the `avahi_…_new` calls, in the place of one that is there for the same purpose.
    ///
    /// - Returns: `AVAHI_OK` or the error.
    func make(
        _ purpose: AvahiObjectKey,
        _ create: (OpaquePointer, UnsafeMutableRawPointer) -> OpaquePointer?
    ) -> CInt {
        // The callbacks of a C object that outlived its ticket would use freed memory.
        free(purpose)
        let ticket = AvahiCallbackContext(purpose: purpose, engine: engine)
        return call { client in
            guard let object = create(client, Unmanaged.passUnretained(ticket).toOpaque()) else {
                return avahi_client_errno(client)
            }
            objects[purpose] = Object(pointer: object, ticket: ticket)
            return CInt(AVAHI_OK)
        }
    }

    /// Frees one object; the only place where that happens while the connection stands.
    func free(_ purpose: AvahiObjectKey) {
        guard let object = objects[purpose] else { return }
        _ = call { _ in
            objects[purpose] = nil
            switch purpose {
            case .client: return CInt(AVAHI_OK)
            case .services: return avahi_service_browser_free(object.pointer)
            case .resolver: return avahi_service_resolver_free(object.pointer)
            case .pointers, .location, .text, .addresses: return avahi_record_browser_free(object.pointer)
            case .group, .heartbeat: return avahi_entry_group_free(object.pointer)
            }
        }
    }

    /// The machine's name with its domain, nil when the daemon does not say.
    func hostName() -> String? {
        var name: String?
        _ = call { client in
            name = avahi_client_get_host_name_fqdn(client).map { String(cString: $0) }
            return name == nil ? avahi_client_errno(client) : CInt(AVAHI_OK)
        }
        return name
    }

    /// Makes one blocking call and judges its outcome: too slow, or an error that ends the connection, is a fault.
    func call(_ body: (OpaquePointer) -> CInt) -> CInt {
        guard let client, fault == nil else { return CInt(AVAHI_ERR_DISCONNECTED) }
        health.callBegan()
        let code = body(client)
        let elapsed = health.callEnded()
        if elapsed > AvahiError.callLimit {
            fault = .hung(seconds: Int(elapsed.components.seconds))
        } else if code < 0 {
            fault = AvahiError(code: code)
        }
        return code
    }
}

/// What an object of libavahi-client is for: the name by which the engine knows it.
enum AvahiObjectKey: Hashable, Sendable {
    case client
    /// The service browser of a type.
    case services(ServiceType)
    /// The record browser that sees what the service browser of the type drops (`InstanceName`).
    case pointers(ServiceType)
    case resolver(ServiceKey)
    /// The record browsers that resolve a split advert.
    case location(ServiceKey)
    case text(ServiceKey)
    /// The record browsers of a host's A and AAAA records.
    case addresses(HostKey, isIPv4: Bool)
    /// The entry group of an advertisement, by its id.
    case group(String)
    /// An empty entry group, for the question whether the daemon answers.
    case heartbeat
}
