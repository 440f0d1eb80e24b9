package import Model

/// The input of a part that follows the local endpoints.
package enum EndpointUpdate: Sendable {
    /// The complete list: at the beginning, and after the part was too slow for the stream of changes.
    case list([Endpoint])
    case change(EndpointChange)

    /// The endpoints of the list, or the one that was added, changed or removed.
    package var endpoints: [Endpoint] {
        switch self {
        case .list(let endpoints): endpoints
        case .change(let change): [change.endpoint]
        }
    }
}

extension EndpointRegistry {
    /// Calls the body with the local endpoints and then with each change, until the task is cancelled.
    package nonisolated func follow(_ body: (EndpointUpdate) async -> Void) async {
        while !Task.isCancelled {
            let (endpoints, changes) = await changes()
            await body(.list(endpoints))
            // The registry ends the stream of a slow subscriber.
            for await change in changes { await body(.change(change)) }
        }
    }
}
