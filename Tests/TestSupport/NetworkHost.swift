/// A machine of a test: an address and a network namespace.
package struct NetworkHost: Sendable {
    package let address: String
    /// Nil for the network of the test.
    package let namespace: NetworkNamespace?

    package init(address: String, namespace: NetworkNamespace?) {
        self.address = address
        self.namespace = namespace
    }

    /// The network of the test.
    package static var loopback: NetworkHost { NetworkHost(address: "127.0.0.1", namespace: nil) }
}
