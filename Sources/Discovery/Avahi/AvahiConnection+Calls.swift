import CAvahi
import Model

/// The calls that ask: browsers and resolvers. Each returns `AVAHI_OK` or the error.
extension AvahiConnection {
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
                    let key = AvahiCallback.key(interface, transport, name, type, domain)
                    let isOurOwn = flags.rawValue & AVAHI_LOOKUP_RESULT_OUR_OWN.rawValue != 0
                    AvahiCallbackContext.report(.service(change, key, isOurOwn: isOurOwn), to: userdata)
                },
                userdata
            )
        }
    }

    /// Asks for host, port and TXT record, and for one address if that is wanted; all of them come from `browseRecords`.
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
                { resolver, _, _, event, _, _, _, host, address, port, txt, _, userdata in
                    guard event == AVAHI_RESOLVER_FOUND, let host else {
                        let client = avahi_service_resolver_get_client(resolver)
                        return AvahiCallbackContext.report(.unresolved(avahi_client_errno(client)), to: userdata)
                    }
                    let details = ResolvedService(
                        host: String(cString: host),
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

    /// Follows the records of a name in Avahi's escaped notation; `type` is `AVAHI_DNS_TYPE_PTR` and so on.
    func browseRecords(
        _ purpose: AvahiObjectKey,
        name: String,
        type: Int,
        interface: CInt = anyInterface,
        transport: CInt = anyProtocol
    ) -> CInt {
        make(purpose) { client, userdata in
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

/// The calls that publish: one entry group for each advertisement. Each returns `AVAHI_OK` or the error.
extension AvahiConnection {
    /// Publishes a service, withdrawing what the group held before.
    ///
    /// The group is reset, not made anew: that would get round mDNS's limits on traffic (avahi-client, "good_publish").
    func publish(_ id: String, name: String, spec: AdvertisementSpec) -> CInt {
        if let group = pointer(of: .group(id)) {
            let code = reset(group)
            if code < 0 { return code }
        } else {
            let code = makeGroup(.group(id))
            if code < 0 { return code }
        }
        guard let group = pointer(of: .group(id)) else { return CInt(AVAHI_ERR_DISCONNECTED) }
        let added = call { _ in
            AvahiString.withList(spec.txt) { list in
                avahi_entry_group_add_service_strlst(
                    group,
                    Self.anyInterface,
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

    func updateText(_ id: String, name: String, spec: AdvertisementSpec) -> CInt {
        guard let group = pointer(of: .group(id)) else { return CInt(AVAHI_ERR_DISCONNECTED) }
        return call { _ in
            AvahiString.withList(spec.txt) { list in
                avahi_entry_group_update_service_txt_strlst(
                    group,
                    Self.anyInterface,
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

    /// Withdraws what a group published and keeps the group.
    func withdraw(_ id: String) {
        if let group = pointer(of: .group(id)) { _ = reset(group) }
    }

    /// Asks the daemon whether an empty group is empty, in one message and one answer: a fault of the connection is all
    /// that can come of it. The group stays.
    func ping() {
        if !has(.heartbeat), makeGroup(.heartbeat) != CInt(AVAHI_OK) { return }
        guard let group = pointer(of: .heartbeat) else { return }
        _ = call { _ in min(avahi_entry_group_is_empty(group), CInt(AVAHI_OK)) }
    }

    private func reset(_ group: OpaquePointer) -> CInt {
        call { _ in avahi_entry_group_is_empty(group) != 0 ? CInt(AVAHI_OK) : avahi_entry_group_reset(group) }
    }

    private func makeGroup(_ purpose: AvahiObjectKey) -> CInt {
        make(purpose) { client, userdata in
            avahi_entry_group_new(
                client,
                { group, state, userdata in
                    let told: AvahiEvent.Group
                    switch state {
                    case AVAHI_ENTRY_GROUP_ESTABLISHED: told = .established
                    case AVAHI_ENTRY_GROUP_COLLISION: told = .collided
                    case AVAHI_ENTRY_GROUP_FAILURE:
                        told = .failed(avahi_client_errno(avahi_entry_group_get_client(group)))
                    default: return
                    }
                    AvahiCallbackContext.report(.group(told), to: userdata)
                },
                userdata
            )
        }
    }
}
