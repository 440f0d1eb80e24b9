import CAvahi
import Logging
import Model

/// Browsing: starts browsers, executes the service table's actions, and feeds browser events into the table.
extension AvahiEngine {
    /// - Returns: The browsers that will report ALL_FOR_NOW.
    func startBrowsers(on connection: AvahiConnection) -> [AvahiObjectKey] {
        var browsers: [AvahiObjectKey] = []
        for type in options.types {
            let services = connection.browseServices(type)
            guard services == CInt(AVAHI_OK) else {
                failedTypes[type] = AvahiString.error(services)
                logger.warning(
                    "cannot browse a service type",
                    metadata: ["type": "\(type)", "reason": "\(AvahiString.error(services))"]
                )
                continue
            }
            browsers.append(.services(type))
            let name = "\(type).\(AvahiConnection.domain)"
            if connection.browseRecords(.pointers(type), name: name, type: Int(AVAHI_DNS_TYPE_PTR)) == CInt(AVAHI_OK) {
                browsers.append(.pointers(type))
            }
        }
        return browsers
    }

    /// Executes the actions of the service table.
    func perform(_ actions: [ServiceTable.Action], on connection: AvahiConnection) {
        for action in actions {
            switch action {
            case .resolve(let key, let wantsAddress):
                let code = connection.resolve(key, wantsAddress: wantsAddress)
                if code != CInt(AVAHI_OK) { unresolved(key, code) }
            case .stopResolving(let key): connection.free(.resolver(key))
            case .follow(let host):
                browseAddresses(of: host, isIPv4: true, on: connection)
                browseAddresses(of: host, isIPv4: false, on: connection)
            case .unfollow(let host):
                connection.free(.addresses(host, isIPv4: true))
                connection.free(.addresses(host, isIPv4: false))
            case .followRecords(let key):
                let name = queryName(of: key)
                for (objectKey, type) in [
                    (AvahiObjectKey.location(key), AVAHI_DNS_TYPE_SRV), (.text(key), AVAHI_DNS_TYPE_TXT),
                ] {
                    let code = connection.browseRecords(
                        objectKey,
                        name: name,
                        type: Int(type),
                        interface: key.interface,
                        transport: key.transport
                    )
                    if code != CInt(AVAHI_OK) {
                        warn("cannot browse the records of a malformed advertisement", of: objectKey, code: code)
                    }
                }
            case .unfollowRecords(let key):
                connection.free(.location(key))
                connection.free(.text(key))
            case .refuse(let key, let reason):
                logger.notice(
                    "rejected a service",
                    metadata: ["name": "\(SanitizedText(key.instance))", "type": "\(key.type)", "reason": "\(reason)"]
                )
            case .drop(let count, let limit):
                logger.warning(
                    "dropped services because of a limit",
                    metadata: ["limit": "\(limit)", "dropped": "\(count)", "hint": "\(BonjourStatus.floodHint)"]
                )
            }
        }
    }

    /// Handles an event of a service browser.
    func handleService(_ change: AvahiEvent.Change, _ key: ServiceKey?, isOurOwn: Bool, of browser: AvahiObjectKey) {
        switch change {
        case .appeared:
            guard let key, !isOurOwn, accepts(key.interface) else { return }
            table.found(key)
        case .disappeared:
            if let key { table.disappeared(key) }
        case .allForNow: initialSync?.browserFinished(browser)
        case .failed(let code): browserFailed(browser, code)
        }
    }

    /// Handles an event of a record browser.
    func handleRecord(
        _ change: AvahiEvent.Change,
        interface: CInt,
        transport: CInt,
        _ data: [UInt8],
        of objectKey: AvahiObjectKey
    ) {
        switch change {
        case .appeared, .disappeared: break
        case .allForNow: return initialSync?.browserFinished(objectKey) ?? ()
        case .failed(let code): return browserFailed(objectKey, code)
        }
        let isPresent = change == .appeared
        switch objectKey {
        case .pointers(let type):
            guard accepts(interface), let target = DNSName(pointerData: data), target.isQueryable,
                case .split(let name) = InstanceName(target: target, of: type, in: AvahiConnection.domain)
            else { return }
            let key = ServiceKey(
                interface: interface,
                transport: transport,
                name: name,
                type: type.text,
                domain: AvahiConnection.domain
            )
            if isPresent { table.foundSplit(key) } else { table.disappeared(key) }
        case .location(let key):
            if let record = SRVRecord(data: data) { table.location(key, record, isPresent: isPresent) }
        case .text(let key): table.text(key, TXTRecord(recordData: data), isPresent: isPresent)
        case .addresses(let host, let isIPv4):
            guard let address = IPAddress(bytes: data), address.isIPv4 == isIPv4 else { return }
            table.address(host, address, transport: transport, isPresent: isPresent)
        case .client, .services, .resolver, .group, .heartbeat: break
        }
    }

    /// Handles a failed lookup.
    func unresolved(_ key: ServiceKey, _ code: CInt) {
        guard !isFault(code) else { return }
        logger.debug(
            "cannot resolve a service",
            metadata: [
                "name": "\(SanitizedText(key.instance))", "type": "\(key.type)", "reason": "\(AvahiString.error(code))",
            ]
        )
        table.unresolved(key, now: .now)
    }

    /// Returns true for an interface without a known name. The interface has gone or belongs to another network
    /// namespace, so no glob can name it.
    private func accepts(_ interface: CInt) -> Bool {
        localInterfaces.names[interface].map { options.interfaces.accepts($0) } ?? true
    }

    private func browserFailed(_ objectKey: AvahiObjectKey, _ code: CInt) {
        guard !isFault(code) else { return }
        initialSync?.browserFinished(objectKey)
        if case .services(let type) = objectKey { failedTypes[type] = AvahiString.error(code) }
        warn("an Avahi browser failed", of: objectKey, code: code)
    }

    private func browseAddresses(of host: HostKey, isIPv4: Bool, on connection: AvahiConnection) {
        let objectKey = AvahiObjectKey.addresses(host, isIPv4: isIPv4)
        let type = Int(isIPv4 ? AVAHI_DNS_TYPE_A : AVAHI_DNS_TYPE_AAAA)
        let code = connection.browseRecords(objectKey, name: host.name, type: type, interface: host.interface)
        if code != CInt(AVAHI_OK) { warn("cannot browse the addresses of a host", of: objectKey, code: code) }
    }

    /// The instance name as it was sent: split into labels at its dots.
    private func queryName(of key: ServiceKey) -> String {
        let labels = key.name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
        return DNSName(labels: labels + DNSName(plain: "\(key.type).\(key.domain)").labels).escaped
    }

    private func warn(_ message: Logger.Message, of objectKey: AvahiObjectKey, code: CInt) {
        logger.warning(
            message,
            metadata: [
                "object": "\(SanitizedText("\(objectKey)", limit: 200))", "reason": "\(AvahiString.error(code))",
            ]
        )
    }
}
