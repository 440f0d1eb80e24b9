/// The schemas of the ports of Android phones that lead to this machine.
enum ReverseTunnelSchemas {
    static let text = #"""
        "ReverseTunnelSpec":{"type":"object","required":["localPort"],"additionalProperties":false,"properties":{
          "localPort":{"$ref":"#/components/schemas/Port"}}},
        "ReverseTunnel":{"type":"object","required":["udid","phonePort","localPort","state"],"properties":{
          "udid":{"$ref":"#/components/schemas/UDID"},"phonePort":{"$ref":"#/components/schemas/Port"},
          "localPort":{"$ref":"#/components/schemas/Port"},"state":{"$ref":"#/components/schemas/TunnelState"}}},
        "ReverseTunnelList":{"type":"object","required":["schema","reverseTunnels"],"properties":{
          "schema":{"const":1},"reverseTunnels":{"type":"array","items":{"$ref":"#/components/schemas/ReverseTunnel"}}}}
        """#
}
