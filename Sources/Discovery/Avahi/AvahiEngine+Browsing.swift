import CAvahi
import Logging
import Model

/// How the engine asks for services, and what it makes of the answers.
extension AvahiEngine {
    /// - Returns: The browsers whose ALL_FOR_NOW can be waited for.
    func startBrowsers(on connection: AvahiConnection) -> [AvahiObjectKey] {
        var browsers: [AvahiObjectKey] = []
        for type in options.types {
            let services = connection.browseServices(type)
            guard services == CInt(AVAHI_OK) else {
                failedTypes[type] = AvahiString.error(services)
                logger.warning(
                    "a service type is not browsed",
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

    func perform(_ actions: [ServiceTable.Action], on connection: AvahiConnection) {
        for action in actions {
            switch action {
            case .resolve(let key, let wantsAddress):
                let code = connection.resolve(key, wantsAddress: wantsAddress)
                if code != CInt(AVAHI_OK) { unresolved(key, code) }
            case .stopResolving(let key): connection.free(.resolver(key))
            case .follow(let host):
                follow(.addresses(host, isIPv4: true), host, Int(AVAHI_DNS_TYPE_A), on: connection)
                follow(.addresses(host, isIPv4: false), host, Int(AVAHI_DNS_TYPE_AAAA), on: connection)
            case .unfollow(let host):
                connection.free(.addresses(host, isIPv4: true))
                connection.free(.addresses(host, isIPv4: false))
            case .followRecords(let key):
                let name = splitName(of: key)
                for (purpose, type) in [
                    (AvahiObjectKey.location(key), AVAHI_DNS_TYPE_SRV), (.text(key), AVAHI_DNS_TYPE_TXT),
                ] {
                    let code = connection.browseRecords(
                        purpose,
                        name: name,
                        type: Int(type),
                        interface: key.interface,
                        transport: key.transport
                    )
                    if code != CInt(AVAHI_OK) { warn("a malformed advert cannot be followed", purpose, code) }
                }
            case .unfollowRecords(let key):
                connection.free(.location(key))
                connection.free(.text(key))
            case .refuse(let key, let reason):
                logger.notice(
                    "a service is refused",
                    metadata: ["name": "\(SanitizedText(key.instance))", "type": "\(key.type)", "reason": "\(reason)"]
                )
            case .drop(let count, let limit):
                logger.warning(
                    "services are dropped because of a limit",
                    metadata: ["limit": "\(limit)", "dropped": "\(count)", "next": "\(BonjourStatus.floodRemedy)"]
                )
            }
        }
    }

    func handleService(_ change: AvahiEvent.Change, _ key: ServiceKey?, isOurOwn: Bool, of browser: AvahiObjectKey) {
        switch change {
        case .appeared:
            guard let key, !isOurOwn, accepts(key.interface) else { return }
            table.found(key)
        case .disappeared:
            if let key { table.disappeared(key) }
        case .allForNow: reconciliation?.heard(browser)
        case .failed(let code): browserFailed(browser, code)
        }
    }

    func handleRecord(
        _ change: AvahiEvent.Change,
        interface: CInt,
        transport: CInt,
        _ data: [UInt8],
        of purpose: AvahiObjectKey
    ) {
        switch change {
        case .appeared, .disappeared: break
        case .allForNow: return reconciliation?.heard(purpose) ?? ()
        case .failed(let code): return browserFailed(purpose, code)
        }
        let isThere = change == .appeared
        switch purpose {
        case .pointers(let type):
            guard accepts(interface), let target = DNSName(pointerData: data), target.isAskable,
                case .split(let name) = InstanceName(target: target, of: type, in: AvahiConnection.domain)
            else { return }
            let key = ServiceKey(
                interface: interface,
                transport: transport,
                name: name,
                type: type.text,
                domain: AvahiConnection.domain
            )
            if isThere { table.foundSplit(key) } else { table.disappeared(key) }
        case .location(let key):
            if let record = SRVRecord(data: data) { table.location(key, record, isThere: isThere) }
        case .text(let key): table.text(key, TXTRecord(recordData: data), isThere: isThere)
        case .addresses(let host, let isIPv4):
            guard let address = IPAddress(bytes: data), address.isIPv4 == isIPv4 else { return }
            table.address(host, address, transport: transport, isThere: isThere)
        case .client, .services, .resolver, .group, .heartbeat: break
        }
    }

    func unresolved(_ key: ServiceKey, _ code: CInt) {
        guard !isFault(code) else { return }
        logger.debug(
            "a service did not resolve",
            metadata: [
                "name": "\(SanitizedText(key.instance))", "type": "\(key.type)", "reason": "\(AvahiString.error(code))",
            ]
        )
        table.unresolved(key, now: .now)
    }

    /// Interfaces whose name is not known are gone by now or of another network namespace; no glob can mean them.
    private func accepts(_ interface: CInt) -> Bool {
        localInterfaces.names[interface].map { options.interfaces.accepts($0) } ?? true
    }

    private func browserFailed(_ purpose: AvahiObjectKey, _ code: CInt) {
        guard !isFault(code) else { return }
        reconciliation?.heard(purpose)
        if case .services(let type) = purpose { failedTypes[type] = AvahiString.error(code) }
        warn("a browser failed", purpose, code)
    }

    private func follow(_ purpose: AvahiObjectKey, _ host: HostKey, _ type: Int, on connection: AvahiConnection) {
        let code = connection.browseRecords(purpose, name: host.name, type: type, interface: host.interface)
        if code != CInt(AVAHI_OK) { warn("the addresses of a host cannot be followed", purpose, code) }
    }

    /// The name of the advert as it was sent: cut at its dots.
    private func splitName(of key: ServiceKey) -> String {
        let labels = key.name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
        return DNSName(labels: labels + DNSName(plain: "\(key.type).\(key.domain)").labels).escaped
    }

    private func warn(_ message: Logger.Message, _ purpose: AvahiObjectKey, _ code: CInt) {
        logger.warning(
            message,
            metadata: ["object": "\(SanitizedText("\(purpose)", limit: 200))", "reason": "\(AvahiString.error(code))"]
        )
    }
}
