/// The schemas of the dashboard: its sign-in, problems, agents and notes.
enum DashboardSchemas {
    static let text = #"""
        "DashboardCode":{"type":"object","required":["schema","code","url","expiresAt"],"properties":{
          "schema":{"const":1},"code":{"type":"string","description":"a secret, valid once"},
          "url":{"type":"string","description":"the page with the code in its fragment, also a secret"},
          "expiresAt":{"$ref":"#/components/schemas/Date"}}},
        "DashboardSessionSpec":{"type":"object","required":["code"],"additionalProperties":false,"properties":{
          "code":{"type":"string"}}},
        "DashboardSession":{"type":"object","required":["schema","token","grant"],"properties":{
          "schema":{"const":1},"token":{"$ref":"#/components/schemas/GrantToken"},
          "grant":{"$ref":"#/components/schemas/Grant"}}},
        "BrokerProblem":{"type":"object","required":["id","severity","subject","text"],"properties":{
          "id":{"type":"string"},"severity":{"enum":["problem","warning","information"]},
          "subject":{"type":"string","description":"the part of the broker"},"text":{"type":"string"},
          "hint":{"type":"string","description":"the next step"},
          "command":{"type":"string","description":"the command of the next step"}}},
        "ProblemList":{"type":"object","required":["schema","problems"],"properties":{
          "schema":{"const":1},"problems":{"type":"array","items":{"$ref":"#/components/schemas/BrokerProblem"}}}},
        "AgentSession":{"type":"object","required":["id","name","startedAt","calls","inFlight"],"properties":{
          "id":{"type":"string"},"client":{"type":"object","required":["name"],"properties":{
            "name":{"type":"string"},"version":{"type":"string"}}},
          "name":{"type":"string","description":"the name of the grant, or the user"},"grant":{"type":"string"},
          "endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "startedAt":{"$ref":"#/components/schemas/Date"},"lastCallAt":{"$ref":"#/components/schemas/Date"},
          "calls":{"type":"integer"},"inFlight":{"type":"array","items":{"type":"object",
            "required":["tool","startedAt"],"properties":{"tool":{"type":"string"},
              "endpoint":{"$ref":"#/components/schemas/EndpointID"},
              "startedAt":{"$ref":"#/components/schemas/Date"}}}}}},
        "AgentList":{"type":"object","required":["schema","agents"],"properties":{
          "schema":{"const":1},"agents":{"type":"array","items":{"$ref":"#/components/schemas/AgentSession"}}}},
        "DeviceNote":{"type":"object","additionalProperties":false,"properties":{
          "label":{"type":"string","maxLength":60},"note":{"type":"string","maxLength":500}},
          "description":"an empty text and an absent member remove the label or the note"}
        """#
}
