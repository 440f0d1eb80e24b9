package import Model

/// One change of what the broker lists.
package enum BrokerEvent: Hashable, Sendable {
    /// The whole list: at the start, and when the changes since the last event are no longer known.
    case snapshot(EndpointList)
    case endpoint(EndpointChange)
    /// All phones, whenever one comes or goes.
    case devices(DeviceList)
}
