import CAvahi
import Model

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
