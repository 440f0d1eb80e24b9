import CAvahi
import Glibc
import Model

/// Lookup calls: browsers and resolvers. Each returns `AVAHI_OK` or an error code.
extension AvahiConnection {
    /// Browses the services of a type on all interfaces.
    func browseServices(_ type: ServiceType) -> CInt {
        make(.services(type)) { client, userdata in
            avahi_service_browser_new(
                client,
                Self.anyInterface,
                Self.anyProtocol,
                type.text,
                Self.domain,
                AvahiLookupFlags(0),
                { browser, interface, transport, event, name, type, domain, flags, userdata in
                    guard let change = AvahiCallback.change(event, avahi_service_browser_get_client(browser)) else {
                        return
                    }
                    let key = AvahiCallback.key(
                        interface: interface,
                        transport: transport,
                        name: name,
                        type: type,
                        domain: domain
                    )
                    let isOurOwn = flags.rawValue & AVAHI_LOOKUP_RESULT_OUR_OWN.rawValue != 0
                    AvahiCallbackContext.report(.service(change, key, isOurOwn: isOurOwn), to: userdata)
                },
                userdata
            )
        }
    }

    /// Resolves machine, port and TXT record, and one address if `wantsAddress` is true.
    ///
    /// All addresses of a machine come from `browseRecords`.
    func resolve(_ key: ServiceKey, wantsAddress: Bool) -> CInt {
        let flags = wantsAddress ? AvahiLookupFlags(0) : AVAHI_LOOKUP_NO_ADDRESS
        return make(.resolver(key)) { client, userdata in
            avahi_service_resolver_new(
                client,
                key.interface,
                key.transport,
                key.instance,
                key.type,
                key.domain,
                Self.anyProtocol,
                flags,
                { resolver, _, _, event, _, _, _, machine, address, port, txt, _, userdata in
                    guard event == AVAHI_RESOLVER_FOUND, let machine else {
                        let client = avahi_service_resolver_get_client(resolver)
                        return AvahiCallbackContext.report(.unresolved(avahi_client_errno(client)), to: userdata)
                    }
                    let details = ResolvedService(
                        machine: String(cString: machine),
                        port: port,
                        txt: TXTRecord(items: AvahiString.items(of: txt)),
                        address: AvahiCallback.address(address)
                    )
                    AvahiCallbackContext.report(.resolved(details), to: userdata)
                },
                userdata
            )
        }
    }

    /// Browses the records of a name in Avahi's escaped notation; `type` is an `AVAHI_DNS_TYPE_…` constant.
    func browseRecords(
        _ objectKey: AvahiObjectKey,
        name: String,
        type: Int,
        interface: CInt,
        transport: CInt
    ) -> CInt {
        make(objectKey) { client, userdata in
            avahi_record_browser_new(
                client,
                interface,
                transport,
                name,
                UInt16(AVAHI_DNS_CLASS_IN),
                UInt16(type),
                AvahiLookupFlags(0),
                { browser, interface, transport, event, _, _, _, data, size, _, userdata in
                    guard let change = AvahiCallback.change(event, avahi_record_browser_get_client(browser)) else {
                        return
                    }
                    let bytes = Array(UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : size))
                    AvahiCallbackContext.report(
                        .record(change, interface: interface, transport: transport, data: bytes),
                        to: userdata
                    )
                },
                userdata
            )
        }
    }
}

/// Publishing calls: one entry group per advertisement. Each returns `AVAHI_OK` or an error code.
extension AvahiConnection {
    /// Publishes a service and replaces the previous contents of the entry group.
    ///
    /// The group is reset, not recreated: a new group would bypass mDNS's rate limits (avahi-client, "good_publish").
    func publish(_ id: String, name: String, spec: AdvertisementSpec) -> CInt {
        if let group = pointer(of: .group(id)) {
            let code = reset(group)
            if code < 0 { return code }
        } else {
            let code = makeGroup(.group(id))
            if code < 0 { return code }
        }
        guard let group = pointer(of: .group(id)) else { return CInt(AVAHI_ERR_DISCONNECTED) }
        let interface = Self.interface(for: spec)
        let added = call { _ in
            AvahiString.withList(spec.txt) { list in
                avahi_entry_group_add_service_strlst(
                    group,
                    interface,
                    Self.anyProtocol,
                    AvahiPublishFlags(0),
                    name,
                    spec.type.text,
                    nil,
                    nil,
                    spec.port,
                    list
                )
            }
        }
        if added < 0 { return added }
        return call { _ in avahi_entry_group_commit(group) }
    }

    /// Replaces the TXT record of a published service without withdrawing it.
    func updateTXT(_ id: String, name: String, spec: AdvertisementSpec) -> CInt {
        guard let group = pointer(of: .group(id)) else { return CInt(AVAHI_ERR_DISCONNECTED) }
        let interface = Self.interface(for: spec)
        return call { _ in
            AvahiString.withList(spec.txt) { list in
                avahi_entry_group_update_service_txt_strlst(
                    group,
                    interface,
                    Self.anyProtocol,
                    AvahiPublishFlags(0),
                    name,
                    spec.type.text,
                    nil,
                    list
                )
            }
        }
    }

    /// The index of the interface on which a service is published.
    private static func interface(for spec: AdvertisementSpec) -> CInt {
        spec.local == true ? CInt(bitPattern: if_nametoindex("lo")) : anyInterface
    }

    /// Removes the published records of a group and keeps the group.
    func withdraw(_ id: String) {
        if let group = pointer(of: .group(id)) { _ = reset(group) }
    }

    /// Checks that the daemon responds: asks whether an empty group is empty (one D-Bus round trip).
    ///
    /// The result is ignored. Only a failure of the connection matters. The group is kept for the next call.
    func ping() {
        if !has(.heartbeat), makeGroup(.heartbeat) != CInt(AVAHI_OK) { return }
        guard let group = pointer(of: .heartbeat) else { return }
        _ = call { _ in min(avahi_entry_group_is_empty(group), CInt(AVAHI_OK)) }
    }

    private func reset(_ group: OpaquePointer) -> CInt {
        call { _ in avahi_entry_group_is_empty(group) != 0 ? CInt(AVAHI_OK) : avahi_entry_group_reset(group) }
    }

    private func makeGroup(_ objectKey: AvahiObjectKey) -> CInt {
        make(objectKey) { client, userdata in
            avahi_entry_group_new(
                client,
                { group, state, userdata in
                    let groupEvent: AvahiEvent.Group
                    switch state {
                    case AVAHI_ENTRY_GROUP_ESTABLISHED: groupEvent = .established
                    case AVAHI_ENTRY_GROUP_COLLISION: groupEvent = .collided
                    case AVAHI_ENTRY_GROUP_FAILURE:
                        groupEvent = .failed(avahi_client_errno(avahi_entry_group_get_client(group)))
                    default: return
                    }
                    AvahiCallbackContext.report(.group(groupEvent), to: userdata)
                },
                userdata
            )
        }
    }
}
