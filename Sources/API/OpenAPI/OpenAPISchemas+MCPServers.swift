/// The documents of the agents' addresses. MCP has schemas of its own; here only its frame is said.
extension OpenAPISchemas {
    static let agents = #"""
        "MCPMessage":{"description":"A JSON-RPC 2.0 message of MCP 2024-11-05 to 2026-07-28, or a batch of 2025-03-26; an answer may come as server-sent events","type":["object","array"]},
        "ToolList":{"type":"object","required":["schema","tools","stale","changed"],"properties":{
          "schema":{"const":1},"tools":{"type":"array","items":{"type":"object"}},
          "stale":{"type":"boolean"},"changed":{"type":"boolean"},
          "reason":{"type":"string"},"next":{"type":"string"}}},
        "ToolCallRequest":{"type":"object","required":["tool"],"properties":{
          "tool":{"type":"string","minLength":1},"arguments":{"type":"object"},
          "wait_s":{"type":"integer","minimum":0,"maximum":60},
          "timeout_s":{"type":"integer","minimum":1,"maximum":120},
          "max_px":{"type":"integer","minimum":0,"maximum":4096}}},
        "ToolAnswer":{"type":"object","required":["schema","result"],"properties":{
          "schema":{"const":1},"result":{"type":"object","required":["content"],
            "additionalProperties":true,"properties":{"content":{"type":"array"},"isError":{"type":"boolean"}}}}},
        "ServerCard":{"type":"object","required":["$schema","name","version","remotes"]},
        "Catalog":{"type":"object","required":["specVersion","entries"]}
        """#
}
