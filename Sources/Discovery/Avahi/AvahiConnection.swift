import CAvahi
import Model

/// One connection to avahi-daemon and all objects created on it. The only owner of libavahi-client's pointers.
///
/// Every call is timed. After the first failure no further call is made, because each would block as long as the first.
/// Then only `close()` is left.
///
/// Confined to the Avahi thread by the actor that holds the connection.
final class AvahiConnection {
    private struct Object {
        let pointer: OpaquePointer
        /// The userdata of the object's callbacks. Must live as long as the object.
        let context: AvahiCallbackContext
    }

    /// Wildcards for the lookup calls.
    static let anyInterface = AvahiIfIndex(AVAHI_IF_UNSPEC)
    static let anyProtocol = AvahiProtocol(AVAHI_PROTO_UNSPEC)
    /// The only domain that is browsed.
    static let domain = "local"

    /// The first failure of the connection; nil while it works.
    private(set) var fault: AvahiError?
    private unowned let engine: AvahiEngine
    private let bonjourStatus: BonjourStatus
    private let clientContext: AvahiCallbackContext
    private var client: OpaquePointer?
    private var objects: [AvahiObjectKey: Object] = [:]

    /// Connects to D-Bus. avahi-daemon may be absent: the client reports when the daemon appears.
    ///
    /// - Throws: `AvahiError` if D-Bus is unreachable.
    init(on poll: AvahiPollPointer, engine: AvahiEngine, bonjourStatus: BonjourStatus) throws(AvahiError) {
        self.engine = engine
        self.bonjourStatus = bonjourStatus
        clientContext = AvahiCallbackContext(objectKey: .client, engine: engine)
        let userdata = Unmanaged.passUnretained(clientContext).toOpaque()
        var code: CInt = 0
        bonjourStatus.callBegan()
        client = avahi_client_new(
            poll.api,
            AVAHI_CLIENT_NO_FAIL,
            { AvahiCallback.clientChanged($0, state: $1, userdata: $2) },
            userdata,
            &code
        )
        // The duration is ignored. A hung daemon now shows as CONNECTING, which has a limit of its own.
        _ = bonjourStatus.callEnded()
        if client == nil { throw .unreachable(reason: AvahiString.error(code)) }
    }

    deinit { close() }

    /// Frees the client and all objects that are still open on it.
    ///
    /// avahi_client_free closes the bus before it frees the objects, so this call never blocks. The daemon then
    /// withdraws the client's advertisements and sends goodbye packets.
    func close() {
        guard let client else { return }
        self.client = nil
        avahi_client_free(client)
        objects = [:]
    }

    /// Returns false for a context of a freed object, so that late events are ignored.
    func owns(_ context: AvahiCallbackContext) -> Bool {
        context === clientContext || objects[context.objectKey]?.context === context
    }

    func has(_ objectKey: AvahiObjectKey) -> Bool { objects[objectKey] != nil }

    func pointer(of objectKey: AvahiObjectKey) -> OpaquePointer? { objects[objectKey]?.pointer }

    /// Creates an object with one of the `avahi_…_new` calls and replaces an existing object with the same key.
    ///
    /// - Returns: `AVAHI_OK` or an error code.
    func make(
        _ objectKey: AvahiObjectKey,
        _ create: (OpaquePointer, UnsafeMutableRawPointer) -> OpaquePointer?
    ) -> CInt {
        // A C object that outlived its context would call back into freed memory.
        free(objectKey)
        let context = AvahiCallbackContext(objectKey: objectKey, engine: engine)
        return call { client in
            guard let object = create(client, Unmanaged.passUnretained(context).toOpaque()) else {
                return avahi_client_errno(client)
            }
            objects[objectKey] = Object(pointer: object, context: context)
            return CInt(AVAHI_OK)
        }
    }

    /// Frees one object while the connection stays open.
    func free(_ objectKey: AvahiObjectKey) {
        guard let object = objects[objectKey] else { return }
        _ = call { _ in
            objects[objectKey] = nil
            switch objectKey {
            case .client: return CInt(AVAHI_OK)
            case .services: return avahi_service_browser_free(object.pointer)
            case .resolver: return avahi_service_resolver_free(object.pointer)
            case .pointers, .location, .text, .addresses: return avahi_record_browser_free(object.pointer)
            case .group, .heartbeat: return avahi_entry_group_free(object.pointer)
            }
        }
    }

    /// The name of this machine with its domain; nil if the daemon does not report a name.
    func machineName() -> String? {
        var name: String?
        _ = call { client in
            name = avahi_client_get_host_name_fqdn(client).map { String(cString: $0) }
            return name == nil ? avahi_client_errno(client) : CInt(AVAHI_OK)
        }
        return name
    }

    /// Runs one blocking call and records a connection failure if the call was too slow or returned a fatal error.
    func call(_ body: (OpaquePointer) -> CInt) -> CInt {
        guard let client, fault == nil else { return CInt(AVAHI_ERR_DISCONNECTED) }
        bonjourStatus.callBegan()
        let code = body(client)
        let elapsed = bonjourStatus.callEnded()
        if elapsed > AvahiError.callLimit {
            fault = .hung(seconds: Int(elapsed.components.seconds))
        } else if code < 0 {
            fault = AvahiError(code: code)
        }
        return code
    }
}

/// Identifies an object of libavahi-client by its purpose.
enum AvahiObjectKey: Hashable, Sendable {
    case client
    /// The service browser of a type.
    case services(ServiceType)
    /// The PTR record browser of a type. It also sees names that the service browser drops (`InstanceName`).
    case pointers(ServiceType)
    case resolver(ServiceKey)
    /// The SRV record browser of a split instance name.
    case location(ServiceKey)
    case text(ServiceKey)
    /// The A or AAAA record browser of a machine.
    case addresses(MachineKey, isIPv4: Bool)
    /// The entry group of an advertisement, by advertisement ID.
    case group(String)
    /// An empty entry group, used to check that the daemon responds.
    case heartbeat
}
